stack {
  name  = "policy"
  after = ["../bucket"]
}
