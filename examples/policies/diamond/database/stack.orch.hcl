stack {
  id = "database"
}
