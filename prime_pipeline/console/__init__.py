"""What commands show people; programs get JSON instead, see ``cli``."""
