"""`python -m app.cli` is `dynahit`."""

from app.cli import main

main()
