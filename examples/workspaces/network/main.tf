variable "region" {
  type = string
}

resource "terraform_data" "network" {
  input = "${terraform.workspace}-network in ${var.region}"
}

output "name" {
  value = terraform_data.network.output
}
