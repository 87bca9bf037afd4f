stack {
  name  = "cart"
  tags  = ["service"]
  after = ["/database"]
}
