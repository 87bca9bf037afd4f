stack {
  id     = "smoke-test"
  labels = ["on:app=FINISHED"]
}
