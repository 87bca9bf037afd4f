# Nested in the network, so it runs after it without saying so.
stack {
  name = "dns"
  tags = ["base"]
}
