"""SDF files: models, links, joints and frames."""
