stack {
  id     = "app"
  labels = ["needs:database"]
}
