"""What people read: tables and pages made from results."""
