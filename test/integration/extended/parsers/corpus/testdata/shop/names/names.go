package names

const Prices = "prices"
