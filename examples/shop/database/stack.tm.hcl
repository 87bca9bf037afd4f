stack {
  name  = "database"
  tags  = ["data"]
  after = ["tag:base"]
}
