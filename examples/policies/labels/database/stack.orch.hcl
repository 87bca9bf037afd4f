stack {
  id     = "database"
  labels = ["needs:network"]
}
