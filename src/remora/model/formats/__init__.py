"""Readers and writers of robot files, and robots from DH tables or random numbers."""
