stack {
  id     = "eu"
  labels = ["region:1"]
}
