# Reads what the other stack left behind, so it fails where that has not been applied.
data "terraform_remote_state" "bucket" {
  backend = "local"

  config = {
    path = "${path.module}/../bucket/terraform.tfstate"
  }
}

resource "terraform_data" "policy" {
  input = "allow read on ${data.terraform_remote_state.bucket.outputs.name}"
}
