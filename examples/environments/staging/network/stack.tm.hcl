stack {
  tags = ["staging", "network"]
}
