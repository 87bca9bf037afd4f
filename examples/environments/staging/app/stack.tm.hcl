stack {
  tags  = ["staging", "app"]
  after = ["../network"]
}
