# The module itself. Its releases are tags: modules/vpc/v1.3.0.

variable "cidr" {
  type    = string
  default = "10.0.0.0/16"
}

output "cidr" {
  value = var.cidr
}
