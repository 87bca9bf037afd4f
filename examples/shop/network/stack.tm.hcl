stack {
  name = "network"
  tags = ["base"]
}
