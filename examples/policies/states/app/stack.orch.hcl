stack {
  id = "app"
}
