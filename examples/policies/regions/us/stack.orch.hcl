stack {
  id     = "us"
  labels = ["region:2"]
}
