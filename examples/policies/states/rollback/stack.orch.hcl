stack {
  id     = "rollback"
  labels = ["on:app=FAILED"]
}
