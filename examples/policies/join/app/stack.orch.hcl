stack {
  id     = "app"
  labels = ["after:database,queue"]
}
