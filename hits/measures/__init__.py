"""How good models are on which rows, and what the data of a round give away: statistics without any model in them."""
