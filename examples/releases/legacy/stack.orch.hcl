stack {
  labels = ["frozen"]
}
