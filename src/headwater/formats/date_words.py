"""The words that dates are written with: months and weekdays in the languages of feeds, and time zones.

Data only; `dates` gives it meaning. Words are in lower case, without a final dot.
Words that are different months in two languages (listopad) are left out.
"""

from typing import Final

_MONTHS: Final = """
jan january jän jänner januar enero ene janvier janv janeiro gennaio gen januari styczeń stycznia \
    января янв január leden ledna ocak ιαν ιανουαρίου ianuarie ian
feb february februar febrero février févr fév fevr fevereiro fev febbraio februari luty lutego \
    февраля фев február únor února şubat φεβ φεβρουαρίου februarie
mar march mär märz mrz marzo mars março maart mrt marzec marca марта мар március márc březen března \
    mart μαρ μάρ μαρτίου martie
apr april abril abr avril avr aprile kwiecień kwietnia апреля апр április ápr duben dubna nisan απρ \
    απρίλ απριλίου aprilie
may mai mayo maio maggio mag mei maj maja мая май május květen května mayıs μάι μαϊ μαι μαΐου
jun june juni junio juin junho giugno giu czerwiec czerwca июня июн június jún červen června haziran \
    ιούν ιουν ιον ιουνίου iunie iun
jul july juli julio juillet juil julho luglio lug lipiec lipca июля июл július júl červenec července \
    temmuz ιούλ ιουλ ιολ ιουλίου iulie iul
aug august agosto ago août aout augustus sierpień sierpnia августа авг augusztus srpen srpna ağustos \
    αύγ αυγ αυγούστου
sep sept september septiembre setiembre septembre setembro set settembre wrzesień września сентября \
    сен сент szeptember szept září eylül σεπ σεπτ σεπτεμβρίου septembrie
oct october okt oktober octubre octobre outubro out ottobre ott październik października октября окт \
    október říjen října ekim οκτ οκτωβρίου octombrie
nov november noviembre novembre novembro ноября ноя нояб kasım νοε νοέμ νοεμβρίου \
    noiembrie noi
dec december dez dezember diciembre dic décembre déc decembre dezembro dicembre grudzień grudnia \
    декабря дек prosinec prosince aralık δεκ δεκεμβρίου decembrie
"""

MONTHS: Final = {
    name: number
    for number, names in enumerate(_MONTHS.strip().splitlines(), start=1)
    for name in names.split()
}

_WEEKDAYS: Final = """
    mon monday tue tues tuesday wed wednes wednesday weds thu thur thurs thursday fri friday sat saturday
    sun sunday mo montag di dienstag mi mittwoch do donnerstag fr freitag sa samstag sonnabend so sonntag
    lun lundi lunes lunedì lunedi mardi martes martedì martedi mer mercredi miércoles miercoles mié mie
    mercoledì mar jeu jeudi jue jueves gio giovedì ven vendredi viernes vie venerdì sam samedi sáb sab
    sábado sabado sabato dim dimanche dom domingo domenica segunda seg terça ter quarta qua quinta qui sexta
    sex ma di wo vr za zo maandag dinsdag woensdag donderdag vrijdag zaterdag zondag пн вт ср чт пт сб вс
    pon wt śr czw pt sob niedz nd δευ τρι τετ πεμ παρ σαβ κυρ δευτέρα τρίτη τετάρτη πέμπτη παρασκευή σάββατο
    κυριακή mån tis ons tor tors fre lör sön man lør søn
"""

WEEKDAYS: Final = frozenset(_WEEKDAYS.split())

# RFC 822 zones, then those that mean one thing wherever feeds use them. Minutes east of Greenwich.
ZONES: Final = {
    **dict.fromkeys(("ut", "utc", "gmt", "z", "uct", "wet", "zulu"), 0),
    **{
        "est": -300,
        "edt": -240,
        "cst": -360,
        "cdt": -300,
        "mst": -420,
        "mdt": -360,
        "pst": -480,
        "pdt": -420,
    },
    # Bare "eastern time" and its like: the season is unknown, standard time is meant.
    **{"et": -300, "ct": -360, "mt": -420, "pt": -480, "at": -240},
    **{
        "ast": -240,
        "adt": -180,
        "nst": -210,
        "ndt": -150,
        "akst": -540,
        "akdt": -480,
        "hst": -600,
        "hdt": -540,
    },
    **{
        "bst": 60,
        "west": 60,
        "cet": 60,
        "met": 60,
        "mez": 60,
        "cest": 120,
        "mest": 120,
        "mesz": 120,
        "eet": 120,
    },
    **{"eest": 180, "msk": 180, "msd": 240, "kst": 540, "jst": 540, "hkt": 480, "sgt": 480, "awst": 480},
    **{"acst": 570, "acdt": 630, "aest": 600, "aedt": 660, "nzst": 720, "nzdt": 780, "sast": 120, "pkt": 300},
    "brt": -180,
}
# A single letter is a military zone whose sign RFC 822 had wrong; RFC 5322 4.3 says to read them all as UTC.
MILITARY_ZONES: Final = frozenset("abcdefghiklmnopqrstuvwxy")
