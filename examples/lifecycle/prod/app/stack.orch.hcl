stack {
  after = ["/prod/database"]

  lifecycle {
    # The nearest value counts. The app holds no data, so it may go.
    prevent_destroy = false

    # Its machines are made anew whenever the network has another id.
    replace_triggered_by = ["/network#id"]

    precondition {
      condition     = tm_can(tm_regex("^vpc-", stacks["/network"].outputs.id))
      error_message = "the app needs a network that is a VPC"
    }
  }
}
