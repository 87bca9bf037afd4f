stack {
  id     = "ap"
  labels = ["region:3"]
}
