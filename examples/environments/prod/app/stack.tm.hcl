stack {
  tags  = ["prod", "app"]
  after = ["../network"]
}
