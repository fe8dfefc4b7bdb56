"""What controlled joints do to frames and to the base: maps of rates and of accelerations."""
