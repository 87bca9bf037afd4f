stack {
  id = "job"
}
