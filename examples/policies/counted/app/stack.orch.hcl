stack {
  id     = "app"
  labels = ["tries:3"]
}
