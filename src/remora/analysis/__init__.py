"""Analysis of robots: manipulability, workspaces, coupling of base and arm, identification."""
