"""What the model says: loads target models, predicts, explains. Importing it never imports torch."""
