stack {
  id = "queue"
}
