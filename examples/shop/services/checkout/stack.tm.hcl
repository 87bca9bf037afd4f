stack {
  name  = "checkout"
  tags  = ["service"]
  after = ["../cart", "/database"]

  # Whoever deploys the checkout also wants its dashboards.
  wants = ["/monitoring"]
}
