resource "terraform_data" "bucket" {
  input = "a-bucket"
}

output "name" {
  value = terraform_data.bucket.output
}
