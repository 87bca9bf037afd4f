stack {
  id     = "database"
  labels = ["after:network"]
}
