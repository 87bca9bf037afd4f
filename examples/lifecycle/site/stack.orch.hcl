stack {
  lifecycle {
    # Visitors notice if there is no site, even for a minute.
    create_before_destroy = true

    postcondition {
      condition     = tm_length(self.outputs.id) < 20
      error_message = "the greeting must fit on a line"
    }
  }
}
