stack {
  after = ["/network"]
}
