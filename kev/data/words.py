"""The names that fill sentences, in three families that share none, so that no name helps on unseen text."""

from kev.data.part import Pack

PEOPLE = {
    Pack.TRAIN: ("Alma", "Bruno", "Chloe", "Dario", "Edda", "Farid", "Greta", "Hugo", "Imke", "Jonas", "Kira", "Lasse"),
    Pack.DEVELOPMENT: ("Mira", "Nils", "Oda", "Pavel", "Quirin", "Rosa", "Sven", "Tilda"),
    Pack.TEST: ("Ugo", "Vera", "Wim", "Xenia", "Yara", "Zeno", "Anouk", "Boris"),
}

PLACES = {
    Pack.TRAIN: (
        "Altmere",
        "Birkfold",
        "Corrow",
        "Dunsea",
        "Elmgate",
        "Fernby",
        "Garth",
        "Hollin",
        "Iverton",
        "Jarrow",
    ),
    Pack.DEVELOPMENT: ("Kelham", "Larkhill", "Morvane", "Nethby", "Orrest", "Pellow"),
    Pack.TEST: ("Quenby", "Rushmoor", "Saltley", "Tarnside", "Ulverby", "Wexcombe"),
}

GOODS = {
    Pack.TRAIN: ("lamps", "kettles", "tents", "ladders", "drills", "rugs", "scales", "clocks", "mugs", "filters"),
    Pack.DEVELOPMENT: ("chairs", "pumps", "helmets", "spades", "radios", "blinds"),
    Pack.TEST: ("stoves", "saws", "boots", "mirrors", "hoses", "trays"),
}

TEAMS = {
    Pack.TRAIN: ("amber", "birch", "cobalt", "delta", "ember", "flint", "grove", "harbour"),
    Pack.DEVELOPMENT: ("iris", "jade", "kestrel", "lotus", "maple", "nova"),
    Pack.TEST: ("onyx", "pine", "quartz", "raven", "slate", "tulip"),
}
