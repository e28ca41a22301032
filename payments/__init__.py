"""What is owed: fees, rules, the ledger, the outbox of bonuses, the month's report. It knows nothing of pages."""
