"""Who may work: the qualifications that HITs ask for and who holds them."""
