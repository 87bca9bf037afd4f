stack {
  id = "network"
}
