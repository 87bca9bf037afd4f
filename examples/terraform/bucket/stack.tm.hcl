stack {
  name = "bucket"
}
