"""Control laws for joints and for the attitude of the base."""
