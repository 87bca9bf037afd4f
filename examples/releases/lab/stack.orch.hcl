stack {
}
