stack {
  tags = ["prod", "network"]
}
