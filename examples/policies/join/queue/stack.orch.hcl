stack {
  id     = "queue"
  labels = ["after:network"]
}
