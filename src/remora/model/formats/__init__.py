"""Readers and writers of robot files, and robots made by formula."""
