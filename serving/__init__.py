from .. import __version__ as __version__
