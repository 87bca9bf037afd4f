resource "terraform_data" "app" {
  input = "${terraform.workspace}-app"
}
