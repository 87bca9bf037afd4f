stack {
  name  = "monitoring"
  after = ["/services"] # all stacks at or below it
}
